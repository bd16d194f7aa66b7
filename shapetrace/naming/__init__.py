"""What an axis is called, and why: from probes to names, each with its evidence."""
