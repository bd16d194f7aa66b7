"""What is traced and with what: a model, how to make it again, and its inputs."""
