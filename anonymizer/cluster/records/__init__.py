"""Records in a cluster: the stages between the parts of vehicles and the classes of windows."""
