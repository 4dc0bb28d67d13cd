"""Instance type × drivers → the ResourceSlices a node will publish before it exists. One file per driver; pure."""
