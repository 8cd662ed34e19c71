"""Generators that learn against a critic."""
