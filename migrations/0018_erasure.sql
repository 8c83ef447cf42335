-- Erasing a person's data: the shipment's key goes, and with it everything that was sealed under it. Nothing here is dropped or
-- rewritten: bodies, personal parts and answers stay as ciphertext that nothing opens any more, so every hash and proof still verifies.
--
-- A message that a human still must look at is sealed under the inbox key, because nobody could read whom it is about; an erasure
-- looks into these bodies for the number and takes the key of those that name it. This index finds them.

CREATE INDEX dead_letter_sealed ON statesvc.dead_letter (carrier_id, dead_letter_id) WHERE sealed_key IS NOT NULL;
