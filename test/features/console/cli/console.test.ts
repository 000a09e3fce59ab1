import { expect, test } from 'vitest';
import { openerOf } from '../../../../src/features/console/cli/browser.ts';

const url = 'http://127.0.0.1:8787/console';
const screen = { DISPLAY: ':0' };

test.each([
  ['linux', screen, ['xdg-open', url]],
  ['linux', { WAYLAND_DISPLAY: 'wayland-0' }, ['xdg-open', url]],
  ['darwin', {}, ['open', url]],
  ['win32', {}, ['rundll32.exe', 'url.dll,FileProtocolHandler', url]],
] as const)('a browser is opened on %s with the variables %j', (platform, environment, expected) => {
  expect(openerOf(url, { platform, environment, isRoot: false })).toEqual(expected);
});

test.each([
  ['without a screen', { platform: 'linux', environment: { DISPLAY: '' }, isRoot: false }],
  ['as root', { platform: 'linux', environment: screen, isRoot: true }],
  ['as root on macOS', { platform: 'darwin', environment: {}, isRoot: true }],
] as const)('no browser is opened %s', (_, machine) => {
  expect(openerOf(url, machine)).toBeNull();
});
