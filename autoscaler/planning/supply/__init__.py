"""Lists what can be bought: pools x offerings x drivers, with the future node of each, blocks, and limits."""
