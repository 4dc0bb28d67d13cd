"""Machines that are nothing but Node objects in a real cluster, brought to life by KWOK: try everything, rent none."""
