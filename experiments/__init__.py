"""The seeds' experiments, made again with the operators of the product."""
