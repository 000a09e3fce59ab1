import { describe, expect, test } from 'vitest';
import { chooseProxy, formatProxy, ignoredExceptions, isException } from '../../src/upstream/proxy.ts';

const proxy = 'http://proxy.example:3128';

describe('NO_PROXY', () => {
  test.each([
    ['store.example', 'https://store.example', true],
    ['store.example', 'https://api.store.example', true],
    ['store.example', 'https://mystore.example', false],
    ['.store.example', 'https://store.example', true],
    ['.store.example', 'https://api.store.example', true],
    ['store.example.', 'https://STORE.example', true],
    ['store.example', 'https://store.example.', true],
    ['*.store.example', 'https://api.store.example', true],
    ['*.store.example', 'https://store.example', false],
    ['*', 'https://store.example', true],
    ['*store.example', 'https://mystore.example', true],
    ['*store.example', 'https://other.example', false],
    ['*.1.2.3', 'https://10.1.2.3', false],
    ['a.example, *', 'https://store.example', true],
    ['*', 'https://[2001:db8::1]', true],
    ['', 'https://store.example', false],
    ['.', 'https://store.example', false],
    ['a.example b.example,store.example', 'https://store.example', true],
    ['10.1.2.3', 'https://10.1.2.3', true],
    ['10.1.2.3', 'https://10.1.2.30', false],
    ['10.0.0.0/8', 'https://10.1.2.3', true],
    ['10.0.0.0/8', 'https://11.1.2.3', false],
    ['0.0.0.0/0', 'https://10.1.2.3', true],
    ['10.1.2.3/32', 'https://10.1.2.3', true],
    ['10.1.2.0/23', 'https://10.1.3.255', true],
    ['10.1.2.0/23', 'https://10.1.4.0', false],
    ['10.0.0.0/33', 'https://10.0.0.0', false],
    ['10.0.0.0/x', 'https://10.0.0.0', false],
    ['10.0.0.0/', 'https://10.0.0.0', false],
    ['10.0.0.0/8', 'https://ten.example', false],
    ['10.0.0', 'https://10.0.0.1', false],
    ['0.1', 'https://10.0.0.1', false],
    ['2001:db8::1', 'https://[2001:db8:0:0::1]', true],
    ['[2001:db8::1]', 'https://[2001:db8::1]', true],
    ['2001:db8::/32', 'https://[2001:db8:5::1]', true],
    ['[2001:db8::]/32', 'https://[2001:db8:5::1]', true],
    ['2001:db8::/32', 'https://[2001:db9::1]', false],
    ['2001:db8::/32', 'https://10.1.2.3', false],
    ['store.example:443', 'https://store.example', true],
    ['store.example:8443', 'https://store.example', false],
    ['store.example:8443', 'https://store.example:8443', true],
    ['store.example:80', 'http://store.example', true],
    ['[2001:db8::1]:443', 'https://[2001:db8::1]', true],
    ['[2001:db8::1]:8443', 'https://[2001:db8::1]', false],
  ])('NO_PROXY %s: whether %s is reached without the proxy is %s', (noProxy, url, isReachedDirectly) => {
    expect(isException(new URL(url), noProxy)).toBe(isReachedDirectly);
  });
});

test('entries of NO_PROXY that match no host are named', () => {
  const understood =
    'localhost, .a.example *.b.example *c.example d.example:443 10.0.0.0/8 [::1]:80 fe80::/10 * under_score.e münchen.example.';
  expect(ignoredExceptions({ NO_PROXY: understood })).toBeNull();
  expect(ignoredExceptions({ HTTP_PROXY: proxy })).toBeNull();
  const ignored = [
    '192.168.*',
    '10.0.0',
    '*.1.2.3',
    'http://a.example',
    'a.example;b.example',
    '<local>',
    '10.0.0.0/33',
  ];
  for (const entry of ignored)
    expect(ignoredExceptions({ NO_PROXY: `a.example,${entry}` })).toEqual({
      source: 'NO_PROXY',
      entries: [entry],
    });
  expect(ignoredExceptions({ no_proxy: 'x/y', NO_PROXY: 'a/b' })).toEqual({
    source: 'no_proxy',
    entries: ['x/y'],
  });
});

test.each<[environment: Record<string, string>, baseUrl: string, source: string | null]>([
  [{ HTTPS_PROXY: proxy }, 'https://store.example', 'HTTPS_PROXY'],
  [{ HTTPS_PROXY: proxy }, 'http://store.example', null],
  [{ HTTP_PROXY: proxy }, 'https://store.example', 'HTTP_PROXY'],
  [{ https_proxy: proxy, HTTPS_PROXY: 'http://other.example' }, 'https://store.example', 'https_proxy'],
  [{ https_proxy: '', HTTPS_PROXY: proxy }, 'https://store.example', null],
  [{ HTTPS_PROXY: proxy, NO_PROXY: '10.0.0.0/8' }, 'https://10.1.2.3', null],
  [{ HTTPS_PROXY: proxy, no_proxy: '10.0.0.0/8' }, 'https://11.1.2.3', 'HTTPS_PROXY'],
  [{ HTTPS_PROXY: proxy }, 'https://localhost', null],
  [{ HTTPS_PROXY: proxy }, 'https://127.3.2.1', null],
  [{ HTTPS_PROXY: proxy }, 'https://[::1]', null],
])('with %j connections to %s go through the proxy of %s', (environment, baseUrl, source) => {
  const chosen = chooseProxy({ baseUrl, proxy: null, connectTo: null }, environment);
  expect(chosen).toEqual(source === null ? null : { url: proxy, source });
});

test('upstream.proxy overrides the environment and its exceptions, and connect_to overrides any proxy', () => {
  const environment = { HTTPS_PROXY: 'http://other.example', NO_PROXY: '*' };
  const settings = { baseUrl: 'https://store.example', proxy, connectTo: null };
  expect(chooseProxy(settings, environment)).toEqual({ url: proxy, source: 'upstream.proxy' });
  const connectTo = { host: '127.0.0.1', port: null };
  expect(chooseProxy({ ...settings, proxy: null, connectTo }, { HTTPS_PROXY: proxy })).toBeNull();
});

test('a proxy is shown without its user and password, and a proxy that is no URL is not shown', () => {
  const shown = (url: string): string | null => formatProxy({ url, source: 'HTTPS_PROXY' });
  expect(shown('http://ada:hush@proxy.example:3128/x')).toBe('http://proxy.example:3128');
  expect([shown('proxy.example:3128'), shown('hush')]).toEqual([null, null]);
});
