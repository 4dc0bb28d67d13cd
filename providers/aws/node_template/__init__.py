"""An AWSNodeTemplate resolved: images, network, launch template, user data, and its status."""
