"""What is wrong with an object beside the others: names that lead nowhere, fields that only a patch may lack."""
