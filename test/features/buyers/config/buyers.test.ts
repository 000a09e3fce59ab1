import { expect, test } from 'vitest';
import { changedKeys, effective } from '../../../../src/config/configuration.ts';
import { configurationOf } from '../../../support/builders/config-builders.ts';

const publicWith = (buyers: unknown) => ({
  flags: { listen: { public: { address: '127.0.0.1:8790', buyers } } },
});
const buyersOf = (buyers: unknown) => configurationOf(publicWith(buyers)).listen.public?.buyers;
const defaults = { title: null, supportUrl: null, accent: '#1d4ed8', askEmail: true };

test('the page is off unless the configuration says otherwise', () => {
  expect(buyersOf(undefined)).toBeNull();
  expect(buyersOf(false)).toBeNull();
});

test('the page is switched on with true, or with its settings', () => {
  expect(buyersOf(true)).toEqual(defaults);
  expect(buyersOf({})).toEqual(defaults);
  const settings = {
    title: 'Shop',
    support_url: 'mailto:help@example.com',
    accent: '#ABCDEF',
    ask_email: false,
  };
  expect(buyersOf(settings)).toEqual({
    title: 'Shop',
    supportUrl: 'mailto:help@example.com',
    accent: '#abcdef',
    askEmail: false,
  });
});

test('an environment variable switches the page on, and another sets a part of it', () => {
  const environment = { LATCHKEY_LISTEN__PUBLIC__ADDRESS: '127.0.0.1:8790' };
  const on = configurationOf({ environment: { ...environment, LATCHKEY_LISTEN__PUBLIC__BUYERS: 'true' } });
  expect(on.listen.public?.buyers).toEqual(defaults);
  const titled = configurationOf({
    environment: { ...environment, LATCHKEY_LISTEN__PUBLIC__BUYERS__TITLE: 'Shop' },
  });
  expect(titled.listen.public?.buyers).toEqual({ ...defaults, title: 'Shop' });
});

test('the settings in effect are written as in the file', () => {
  const shown = effective(configurationOf(publicWith({ title: 'Shop' })));
  expect(shown).toMatchObject({ listen: { public: { buyers: { title: 'Shop', ask_email: true } } } });
  expect(effective(configurationOf(publicWith(false)))).toMatchObject({
    listen: { public: { buyers: null } },
  });
  const [before, after] = [true, { ask_email: false }].map((buyers) => configurationOf(publicWith(buyers)));
  expect(before && after && changedKeys(before, after)).toEqual(['listen.public.buyers.ask_email']);
});

test.each([
  [{ accent: 'red' }, 'listen.public.buyers.accent: must be a color such as "#1d4ed8", in quotes'],
  [{ support_url: 'http://example.com' }, 'listen.public.buyers.support_url: must be an https URL'],
  [{ support_url: 'javascript:alert(1)' }, 'listen.public.buyers.support_url: must be an https URL'],
  [{ titel: 'Shop' }, 'listen.public.buyers.titel: unknown key; did you mean title?'],
  ['yes', 'listen.public.buyers: must be a mapping of keys to values'],
])('%j is refused', (buyers, error) => {
  expect(() => buyersOf(buyers)).toThrow(error);
});

test('only an authority has the page', () => {
  const { listen } = publicWith(true).flags;
  const upstream = { base_url: 'https://api.example', api_key: 'key' };
  expect(() => configurationOf({ flags: { listen, upstream } })).toThrow(
    'listen.public.buyers: is only for an authority',
  );
});
