"""The commands, one file each: its options, its help, and what it prints."""
