"""Chooses the nodes to buy for a demand. It works on numbers and one oracle, and knows no pods, claims or clouds."""
