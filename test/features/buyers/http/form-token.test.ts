import { expect, test } from 'vitest';
import { formToken, isFormToken } from '../../../../src/features/buyers/http/form-token.ts';
import { minuteMs } from '../../../../src/domain/time.ts';

const at = 1_800_000_000_000;
const token = formToken('secret', 'KEY', at);

test('a token is valid for its license key for half an hour, whichever node has made it', () => {
  expect(isFormToken(token, 'secret', 'KEY', at)).toBe(true);
  expect(isFormToken(token, 'secret', 'KEY', at + 30 * minuteMs - 1)).toBe(true);
  expect(isFormToken(token, 'secret', 'KEY', at + 30 * minuteMs)).toBe(false);
});

test.each([
  ['of another license key', token, 'secret', 'key'],
  ['of another store', token, 'other', 'KEY'],
  ['with a later end', token.replace(/^\d+/, String(at * 2)), 'secret', 'KEY'],
  ['with another signature', token.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A')), 'secret', 'KEY'],
  ['without a signature', `${at * 2}.`, 'secret', 'KEY'],
  ['that is empty', '', 'secret', 'KEY'],
])('a token %s is not valid', (_, sent, secret, licenseKey) => {
  expect(isFormToken(sent, secret, licenseKey, at)).toBe(false);
});
