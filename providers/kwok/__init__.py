"""Machines that are only Node objects in a real cluster, which KWOK makes Ready: a trial of everything without rent."""
