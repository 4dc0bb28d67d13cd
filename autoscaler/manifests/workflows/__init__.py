"""Workflows of Argo (argoproj.io): their templates, who calls these, and the pods and objects that they make."""
