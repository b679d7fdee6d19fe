"""The page that shows why texts were translated so: `babelserve-translate --explain`."""
