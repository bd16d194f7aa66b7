"""What happens while a model runs: events at statements and operators, and the records they become."""
