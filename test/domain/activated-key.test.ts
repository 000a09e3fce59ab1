import { expect, test } from 'vitest';
import { activatedKey, activationsBetween, partsOfKey } from '../../src/domain/agent/activated-key.ts';

test('a stored key names a license key and its activation', () => {
  expect(partsOfKey(activatedKey('KEY', 'f90ec370'))).toEqual({
    licenseKey: 'KEY',
    activationId: 'f90ec370',
  });
  expect(partsOfKey('KEY')).toEqual({ licenseKey: 'KEY', activationId: null });
});

test('the activations of a license key are between two keys, and no other key is', () => {
  const [first, last] = activationsBetween('KEY');
  const isBetween = (key: string): boolean => key > first && key < last;
  expect(['KEY #0', 'KEY #zz', 'KEY #ü'].every(isBetween)).toBe(true);
  expect(['KEY', 'KEY ', 'KEY-2', 'KEY-2 #0', 'KE #0'].some(isBetween)).toBe(false);
});
