"""The contract with `export`: a bundle, read and checked. Its face: `open_bundle`, `Manifest`, `Tokenizer`."""
