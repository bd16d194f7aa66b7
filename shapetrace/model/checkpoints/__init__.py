"""How do trained weights come into a model: by which names, and checked against what?"""
