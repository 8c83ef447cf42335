import { stated, text, unsure } from './reading.js';
import { COUNTRIES } from './tables.js';

const ASCII = /^[\x00-\x7f]*$/;

function country(value) {
  const found = text(value);
  if (found === null) return null;
  if (!ASCII.test(found)) unsure('a country that is not plain ASCII');
  return found.length === 2 ? found.toUpperCase() : (COUNTRIES.get(found.toLowerCase()) ?? found);
}

export const place = (printed) =>
  stated({
    city: text(printed.city),
    region: text(printed.region),
    postal_code: text(printed.postalCode),
    country: country(printed.country),
    facility: text(printed.facility),
  });
