#!/usr/bin/env bash
# PyPI cloudevents 2.2.0: its `rabbitmq` and `amqp` bindings do not read each other's messages.
#
# The AMQP binding of CloudEvents 1.0.2 names attributes `cloudEvents:` or `cloudEvents_`. The
# package has two modules for AMQP: `amqp` follows that, `rabbitmq` reads and writes `ce-`, the
# prefix of the HTTP binding. A message of one, given to the other, lacks its required attributes.
#
# Seen: headers cloudEvents_id, ...: `amqp` reads the event, `rabbitmq` raises because the required ones are missing.
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT; cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check cloudevents==2.2.0 2>/dev/null
found=$(env/bin/python - <<'PY'
from cloudevents.core.bindings import amqp, rabbitmq

names = {"id": "1", "source": "/parcels", "type": "shipment.status_changed", "specversion": "1.0"}
headers = {f"cloudEvents_{name}": value for name, value in names.items()}
body = b'{"status": "delivered"}'
print("amqp reads", amqp.from_binary_event(amqp.AMQPMessage(
    properties={"content-type": "application/json"}, application_properties=headers,
    application_data=body)).get_id())
try:
    rabbitmq.from_binary_event(rabbitmq.RabbitMQMessage(
        headers=headers, content_type="application/json", body=body))
except Exception as error:
    print("rabbitmq raises", type(error).__name__)
PY
)
echo "cloudevents 2.2.0: ${found//$'\n'/, }"
[[ $found == $'amqp reads 1\nrabbitmq raises CloudEventValidationError' ]] || { echo 'behaviour changed' >&2; exit 1; }
