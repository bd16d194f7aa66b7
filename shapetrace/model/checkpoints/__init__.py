"""Files of trained models: configuration, names of parameters, shards, weights."""
