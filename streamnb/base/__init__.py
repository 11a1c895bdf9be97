"""The nouns that cross borders, and what each side promises."""
