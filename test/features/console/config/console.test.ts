import { expect, test } from 'vitest';
import { changedKeys, effective } from '../../../../src/config/configuration.ts';
import { reloadedConfiguration } from '../../../../src/daemon/live-configuration.ts';
import { configurationOf } from '../../../support/builders/config-builders.ts';

test('the page is served unless the configuration says otherwise', () => {
  expect(effective(configurationOf())).toMatchObject({ console: { enabled: true } });
});

test('the currency of amounts has three letters', () => {
  expect(configurationOf({ flags: { console: { currency: 'eur' } } }).console.currency).toBe('EUR');
  expect(() => configurationOf({ flags: { console: { currency: 'Euro' } } })).toThrow('console.currency');
});

test('whether the page is served changes only at a restart', () => {
  const running = configurationOf();
  const wanted = configurationOf({ flags: { console: { enabled: false } } });
  expect(changedKeys(running, reloadedConfiguration(running, wanted))).toEqual([]);
  expect(changedKeys(reloadedConfiguration(running, wanted), wanted)).toEqual(['console.enabled']);
});
