"""Ten typing errors in calls, each in Python and in TypeScript: a type checker must find every
one.
"""

from typing import Final

PLANTED: Final = {
    "an unknown field": (
        "client.subscriptions.create('https://a.example/', carier=['ups'])",
        "client.subscriptions.create({ url: 'https://a.example/', carier: ['ups'] })",
    ),
    "a field with one letter too many": (
        "client.subscriptions.create('https://a.example/', statusses=['lost'])",
        "client.subscriptions.create({ url: 'https://a.example/', statusses: ['lost'] })",
    ),
    "an unknown word of a list": (
        "client.subscriptions.create('https://a.example/', statuses=['lst'])",
        "client.subscriptions.create({ url: 'https://a.example/', statuses: ['lst'] })",
    ),
    "an unknown member of a nested object": (
        (
            "client.subscriptions.create('https://a.example/', shipments=[{'carrier_id': 'ups',"
            " 'number': '1Z'}])"
        ),
        (
            "client.subscriptions.create({ url: 'https://a.example/', shipments: [{ carrier_id:"
            " 'ups', number: '1Z' }] })"
        ),
    ),
    "an unknown change": (
        "client.subscriptions.change(UUID(int=1), statuss=['lost'])",
        "client.subscriptions.change('', { statuss: ['lost'] })",
    ),
    "an unknown filter": (
        "client.shipments.list(flg='contradicted')",
        "client.shipments.list({ flg: 'contradicted' })",
    ),
    "a misspelt status": (
        "client.shipments.list(status='deliverd')",
        "client.shipments.list({ status: 'deliverd' })",
    ),
    "an unknown order": (
        "client.shipments.list(order='newst')",
        "client.shipments.list({ order: 'newst' })",
    ),
    "an unknown outcome": (
        "client.subscriptions.notifications(UUID(int=1), outcome='wating')",
        "client.subscriptions.notifications('', { outcome: 'wating' })",
    ),
    "a text for a number": (
        "client.shipments.expect('ups', '1Z', hours='48')",
        "client.shipments.expect('ups', '1Z', '48')",
    ),
}
