"""What can be bought: pools x offerings x drivers, the node each becomes, blocks, and limits."""
