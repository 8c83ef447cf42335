from statesvc.health.ingest_report import MINUTE_SECONDS, IngestReport, LastMinute


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_pushes_are_counted_for_a_minute() -> None:
    clock = Clock()
    minute = LastMinute(now=clock)
    assert minute.counts() == (0, {})
    for second in range(120):
        clock.seconds = second
        minute.acknowledged()
        if second < 30:
            minute.refused("storage_low")
    acknowledged, refused = minute.counts()
    assert MINUTE_SECONDS - 2 <= acknowledged <= MINUTE_SECONDS + 2
    assert refused == {}
    clock.seconds += MINUTE_SECONDS
    assert minute.counts() == (0, {})


def test_a_disk_is_at_its_bound_only_where_it_is_seen() -> None:
    assert not IngestReport(
        acknowledged=0, disk_free_bytes=None, disk_free_bytes_min=9
    ).is_disk_full
    assert not IngestReport(acknowledged=0, disk_free_bytes=9, disk_free_bytes_min=9).is_disk_full
    assert IngestReport(acknowledged=0, disk_free_bytes=8, disk_free_bytes_min=9).is_disk_full
