"""The words of a report, in English and Chinese."""
