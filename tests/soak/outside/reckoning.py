"""Reckoning of the ledger against what the service says of messages, histories and notifications:
each promise by itself.
"""

import asyncio
import base64
import json
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, TypeVar

from tests.soak.outside.client import Client
from tests.soak.outside.envelopes import MARK
from tests.soak.outside.log import CheckedLog
from tests.soak.outside.parcels import STRANGE_MEANS
from tests.soak.outside.record import Record

AT_ONCE: Final = 8
OPENED: Final = 150
"""Bodies of people who were not erased that are read back, byte for byte."""
T = TypeVar("T")


@dataclass(slots=True)
class Reckoning:
    """`broken` is empty when all promises were kept; `figures` are for people."""

    client: Client
    record: Record
    log: CheckedLog
    broken: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    figures: Counter[str] = field(default_factory=Counter)
    names: dict[tuple[str, str], str] = field(default_factory=dict)
    """Shipment ids by carrier and number."""

    async def run(self) -> None:
        for shipment, events in self.log.events.items():
            self.names[events[0]["carrier_id"], events[0]["tracking_number"]] = shipment
        await self._messages()
        await self._parcels()
        self._notifications()

    async def _each(self, work: Iterable[T], check: Callable[[T], Awaitable[None]]) -> None:
        queue = iter(work)

        async def lane() -> None:
            for one in queue:
                await check(one)

        await asyncio.gather(*(lane() for _ in range(AT_ONCE)))

    async def _messages(self) -> None:
        rows = self.record.rows(
            "SELECT body.id, parcel, message, cause, empty, named, body.carrier, body.body FROM"
            " body JOIN ack ON ack.body = body.id WHERE message <> '' GROUP BY body.id, message"
        )
        of_body = Counter(row[0] for row in rows)
        self.broken["bodies acknowledged as several messages"] += [
            body for body, count in of_body.items() if count > 1
        ]
        unacknowledged = self.record.rows(
            "SELECT id FROM body WHERE id NOT IN (SELECT body FROM ack)"
        )
        self.broken["bodies without an ACK"] += unacknowledged
        self.figures["messages"] = len({row[2] for row in rows})
        in_log = {event["message_id"] for events in self.log.events.values() for event in events}
        self.broken["events of messages that were never acknowledged"] += sorted(
            in_log - {row[2] for row in rows} - self._other_sources()
        )[:20]
        erased = self._erased_parcels()
        opened = Counter[str]()

        async def check(row: Any) -> None:
            body, parcel, message, cause, empty, named, carrier, text = row
            status, told = await self.client.get(f"/v1/messages/{message}")
            state = told.get("state") if status == 200 else None
            if state != ("settled" if cause is None else "dead_letter"):
                self.broken["messages that came to something else"].append(
                    (message, state, cause, bytes(text[:80]))
                )
            elif cause is None and told["outcome"] != ("empty" if empty else "applied"):
                self.broken["messages with another outcome"].append(
                    (message, told["outcome"], bytes(text[:80]))
                )
            self.figures[f"messages {state}"] += 1
            is_erased = parcel in erased or (carrier, named) in erased
            if is_erased or opened["read"] < OPENED:
                opened["read"] += not is_erased
                await self._open(message, text, is_erased=is_erased, body=body)

        await self._each(rows, check)
        dead = {row[2]: row[3] for row in rows if row[3] is not None}
        self._causes(dead, await self._dead_letters())

    def _other_sources(self) -> set[str]:
        """Return the messages that `POST /v1/events` made, whose ids it does not say: those of
        events that only such bodies state.
        """
        direct = {
            json.loads(body)["event_id"]
            for (body,) in self.record.rows("SELECT body FROM body WHERE direct")
        }  # fmt: skip
        return {
            event["message_id"]
            for events in self.log.events.values()
            for event in events
            if event["event_id"] in direct
        }  # fmt: skip

    def _erased_parcels(self) -> set[Any]:
        erasures = set(self.record.rows("SELECT carrier, number FROM erasure"))
        return erasures | {
            key
            for key, carrier, number, _ in self.record.parcels()
            if (carrier, number) in erasures
        }

    async def _open(self, message: str, sent: bytes, *, is_erased: bool, body: int) -> None:
        status, told = await self.client.get(f"/v1/messages/{message}?include=personal")
        text = told.get("body_base64") if status == 200 else None
        if is_erased:
            self.figures["bodies of erased people that stay closed"] += text is None
            if text is not None or MARK in json.dumps(told):
                self.broken["bodies of erased people that can be read"].append(
                    (message, bytes(sent[:80]))
                )
        elif text is None or base64.b64decode(text) != sent:
            self.broken["bodies that are not what was sent"].append((message, body, status))

    async def _dead_letters(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        path = "/v1/dead-letters?open=true&limit=200"
        cursor = ""
        while True:
            status, page = await self.client.get(path + cursor)
            assert status == 200, page
            found += page["items"]
            if page["next_cursor"] is None:
                return found
            cursor = f"&cursor={page['next_cursor']}"

    def _causes(self, expected: dict[str, str], listed: list[dict[str, Any]]) -> None:
        found: dict[str, list[str]] = defaultdict(list)
        for each in listed:
            if each["kind"] == "message":
                found[each["message_id"]].append(each["cause"])
            else:
                self.broken[f"open dead letters of kind {each['kind']}"].append(each)
        self.figures["dead letters"] = len(found)
        for message in expected.keys() | found.keys():
            if found.get(message, []) != [expected.get(message)]:
                self.broken["dead letters other than foretold"].append(
                    (message, expected.get(message), found.get(message))
                )

    async def _parcels(self) -> None:
        erasures = set(self.record.rows("SELECT carrier, number FROM erasure"))
        known = set()

        async def check(parcel: Any) -> None:
            _, carrier, number, expected = parcel
            shipment = self.names.get((carrier, number))
            if shipment is None:
                self.broken["parcels without events"].append((carrier, number))
                return
            known.add(shipment)
            self._history(shipment, (carrier, number), expected)
            await self._state((carrier, number), expected, is_erased=(carrier, number) in erasures)
            for claimed in expected["claimed"]:
                status, _ = await self.client.get(f"/v1/shipments/{carrier}/{claimed}")
                if status != 404:
                    self.broken["parcels that only a contradiction named"].append((claimed, status))

        await self._each(self.record.parcels(), check)
        self.figures["parcels"], self.figures["erasures"] = len(known), len(erasures)
        self.broken["shipments that nobody pushed"] += sorted(self.log.events.keys() - known)[:20]

    def _history(self, shipment: str, name: tuple[str, str], expected: dict[str, Any]) -> None:
        said, own, corrections = [], 0, 0
        ids = defaultdict(set)
        for event in self.log.events[shipment]:
            if event["kind"] in {"scan", "unmapped"}:
                said.append(
                    (
                        datetime.fromisoformat(event["occurred_at"]).timestamp(),
                        event.get("carrier_code"),
                    )
                )
                ids[said[-1]].add(event["event_id"])
            elif event["event_id"].startswith("c1-"):
                own += 1
            elif event["kind"] == "correction":
                corrections += 1
            else:
                self.broken["events that nobody said"].append(
                    (name, event["event_id"], event["kind"])
                )
        wanted = [(at, code) for at, code, _ in expected["scans"]]
        if Counter(said) != Counter(wanted):
            lost, more = Counter(wanted) - Counter(said), Counter(said) - Counter(wanted)
            self.broken["scans that are lost"] += [(name, *lost.elements())] if lost else []
            self.broken["scans that are twice, or that nobody made"] += (
                [(name, *more.elements())] if more else []
            )
        self._ids(name, ids, expected)
        if own > expected["strange"]:
            self.broken["codes corrected more than once"].append((name, own))
        if corrections != expected["corrections"]:
            self.broken["corrections lost or twice"].append(
                (name, corrections, expected["corrections"])
            )
        if len(self.log.conflicts[shipment]) != expected["conflicts"]:
            self.broken["contradictions lost or twice"].append(
                (name, len(self.log.conflicts[shipment]), expected["conflicts"])
            )
        self.figures["events"] += len(self.log.events[shipment])
        self.figures["contradictions"] += len(self.log.conflicts[shipment])
        self.figures["corrections by carriers"] += corrections
        self.figures["corrections by renormalize"] += own

    def _ids(
        self,
        name: tuple[str, str],
        ids: dict[tuple[float, str | None], set[str]],
        expected: dict[str, Any],
    ) -> None:
        for at, code, event_id in expected["scans"]:
            if event_id is not None and ids[at, code] != {event_id}:
                self.broken["ids that are not the carrier's"].append(
                    (name, event_id, ids[at, code])
                )

    async def _state(
        self, name: tuple[str, str], expected: dict[str, Any], *, is_erased: bool
    ) -> None:
        carrier, number = name
        status, told = await self.client.get(
            f"/v1/shipments/{carrier}/{number}" + ("?include=personal" if is_erased else "")
        )
        if status != 200:
            self.broken["shipments that cannot be read"].append((name, status))
            return
        # that a day ended without a delivery depends on the hour of the run
        flags = sorted({*told["flags"]} - {"delivery_missed"})
        if told["status"] != expected["status"] or flags != expected["flags"]:
            self.broken["shipments in another state"].append(
                (name, told["status"], flags, expected["status"], expected["flags"])
            )
        if told["version"] != len(self.log.events[self.names[name]]):
            self.broken["shipments behind their events"].append((name, told["version"]))
        transitions = self.log.transitions[self.names[name]]
        if (transitions[-1]["to"] if transitions else "unknown") != expected["status"]:
            self.broken["transitions that end in another state"].append((name, expected["status"]))
        if is_erased:
            await self._forgotten(name)
        elif expected["signed"] and self.figures["signers read"] < OPENED:
            _, told = await self.client.get(f"/v1/shipments/{carrier}/{number}?include=personal")
            self.figures["signers read"] += 1
            if told.get("signed_by") != expected["signed"]:
                self.broken["signers that are lost"].append((name, told.get("signed_by")))

    async def _forgotten(self, name: tuple[str, str]) -> None:
        carrier, number = name
        self.figures["erased shipments"] += 1
        for call in ("", "/history", "/audit", "/evidence"):
            path = f"/v1/shipments/{carrier}/{number}{call}" + (
                "" if call == "/evidence" else "?include=personal"
            )
            status, told = await self.client.get(path, accept="application/json")
            if status != 200 or MARK in json.dumps(told):
                self.broken[f"erased shipments at GET ...{call}"].append((name, status))

    def _notifications(self) -> None:
        """Check notifications: each change once, under one id; each change of status delivered; the
        last one is the truth.
        """
        bodies: dict[str, bytes] = {}
        changes: dict[tuple[str, str, str, int], set[str]] = defaultdict(set)
        delivered: dict[tuple[str, str], set[tuple[str, str, int]]] = defaultdict(set)
        for name, body, accepted in self.record.rows(
            "SELECT webhook, body, accepted FROM delivery ORDER BY rowid"
        ):
            self.figures["deliveries"] += 1
            if bodies.setdefault(name, body) != body:
                self.broken["ids that said two things"].append(name)
            message = json.loads(body)
            data = message["data"]
            changes[
                message["type"], data["carrier_id"], data["tracking_number"], data["sequence"]
            ].add(name)
            if accepted and message["type"] == "shipment.status_changed":
                delivered[data["carrier_id"], data["tracking_number"]].add(
                    (data["from"], data["to"], data["sequence"])
                )
        self.figures["notifications"] = len(bodies)
        self.broken["changes under several ids"] += [
            change for change, ids in changes.items() if len(ids) > 1
        ]
        shared = Counter(name for ids in changes.values() for name in ids)
        self.broken["ids of several changes"] += [
            name for name, count in shared.items() if count > 1
        ]
        for name, shipment in self.names.items():
            due = {
                (each["from"], each["to"], each["sequence"])
                for each in self.log.transitions[shipment]
            }
            if due - delivered[name]:
                self.broken["changes that nobody was notified of"].append(
                    (name, sorted(due - delivered[name]))
                )
            if delivered[name] - due:
                self.broken["notifications of changes that never were"].append(
                    (name, sorted(delivered[name] - due))
                )


def mapping_of(code: tuple[str, ...]) -> list[str]:
    """Return the arguments with which an operator teaches a strange code."""
    typed = ["--type", code[0]] if len(code) > 1 else []
    return [
        *typed,
        "--code",
        code[-1],
        "--status",
        STRANGE_MEANS,
        "--why",
        "seen on the road",
        "--yes",
    ]
