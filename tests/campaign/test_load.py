"""A sample of the campaign of load: three seconds, which a busy machine may answer slowly, but not wrongly."""

from tests.campaign.load import ASKERS, WATCHERS, load


def test_a_studio_serves_many_at_a_time():
    found = load(3.0, "m-independent=1")
    assert found["started"] == 303
    assert found["errors"] == []
    assert found["answers"] >= ASKERS
    assert found["events"] >= WATCHERS
