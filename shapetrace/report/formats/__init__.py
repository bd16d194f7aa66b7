"""The formats of a report: one file each, and the list of them."""
