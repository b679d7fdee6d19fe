"""Files that are translated with their structure untouched: each format is read into units, and written back."""
