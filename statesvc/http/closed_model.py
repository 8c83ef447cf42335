"""The base of models that refuse members which they do not name.

So a typing error never passes for a default.
"""

from pydantic import BaseModel, ConfigDict


class ClosedModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
