"""A sample of the campaign of load: three seconds, which a busy machine may answer slowly, but not wrongly."""

from tests.campaign.load import ASKERS, WATCHERS, studio


def test_a_studio_serves_many_at_a_time():
    found = studio(0, small=True)
    assert found["faults"] == []
    assert found["answers"] >= ASKERS
    assert found["events"] >= WATCHERS
