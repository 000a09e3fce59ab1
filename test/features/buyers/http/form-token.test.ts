import { expect, test } from 'vitest';
import { formToken, isFormToken } from '../../../../src/features/buyers/http/form-token.ts';
import { minuteMs } from '../../../../src/domain/time.ts';

const at = 1_800_000_000_000;
const license = { licenseKey: 'KEY', buyerEmail: 'ann@example.com' };
const token = formToken('secret', license, at);

test('a token is valid for its license key for half an hour, whichever node has made it', () => {
  expect(isFormToken(token, 'secret', license, at)).toBe(true);
  expect(isFormToken(token, 'secret', license, at + 30 * minuteMs - 1)).toBe(true);
  expect(isFormToken(token, 'secret', license, at + 30 * minuteMs)).toBe(false);
});

test('a token stays valid if the address of the buyer is only spelled differently', () => {
  expect(isFormToken(token, 'secret', { ...license, buyerEmail: ' Ann@Example.com' }, at)).toBe(true);
});

test.each([
  ['of another license key', token, 'secret', { ...license, licenseKey: 'key' }],
  ['of another buyer', token, 'secret', { ...license, buyerEmail: 'bob@example.com' }],
  ['of another store', token, 'other', license],
  ['with a later end', token.replace(/^\d+/, String(at * 2)), 'secret', license],
  ['with another signature', token.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A')), 'secret', license],
  ['without a signature', `${at * 2}.`, 'secret', license],
  ['that is empty', '', 'secret', license],
])('a token %s is not valid', (_, sent, secret, opened) => {
  expect(isFormToken(sent, secret, opened, at)).toBe(false);
});
