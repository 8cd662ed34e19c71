"""Visible units that are no bits, on real tables: an RBM must beat independent columns on rows that it has not seen."""

from dataclasses import replace

import likely


def gain(dataset, n_train, n_test, **options):
    """Evidence of test rows beyond that of independent columns: the mean, and its standard error."""
    # complete rows: holes have tests of their own, and filling them is another program to compile
    train, test = dataset.train.drop_nulls()[:n_train], dataset.test.drop_nulls()[:n_test]
    model = likely.RBM(schema=dataset.schema, random_state=0, **options).fit(train)
    evidence = model.evidence(test)
    assert evidence.kind == "exact"
    return evidence - likely.Independent(schema=dataset.schema).fit(train).evidence(test)


def test_wine_has_real_columns(data_folder):
    wine = likely.datasets.load("wine")
    wine = replace(wine, schema=wine.schema.plain_numbers())  # as Gaussian units, which this is a test of
    difference = gain(wine, 600, 300, n_components=8, n_epochs=40)
    assert difference.mean > 5 * difference.stderr


def test_adult_has_categorical_columns(data_folder):
    difference = gain(likely.datasets.load("adult"), 600, 300, n_components=8, n_epochs=20, n_chains=25)
    assert difference.mean > 5 * difference.stderr
