"""Views, state and steps: `NaiveBayes`."""
