"""Which nodes to buy for a demand, over numbers and one question: it knows no pods, claims or clouds."""
