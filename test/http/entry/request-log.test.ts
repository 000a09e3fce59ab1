import { expect, test } from 'vitest';
import { Proxies } from '../../../src/http/entry/client-address.ts';
import { openApp, serverOf } from '../../support/app/http-app.ts';

test('a flood of refused requests on the public listener leaves few lines, and the lines count the others', async () => {
  await using opened = await openApp({ role: 'agent' });
  let now = Date.UTC(2026, 0, 1);
  const listener = serverOf(
    { ...opened.app, now: () => now },
    { public: { proxies: new Proxies([]), issuerHost: () => null } },
  );
  const send = async (): Promise<void> => void (await listener.inject('/nowhere'));
  for (let count = 0; count < 200; count += 1) await send();
  expect(opened.lines).toHaveLength(30);
  now += 1_000;
  await send();
  expect(opened.lines).toHaveLength(31);
  expect(opened.lines.at(-1)).toMatchObject({ message: 'refused', status: 404, unlogged: 170 });
});

test('every refused request on another listener leaves a line', async () => {
  await using opened = await openApp({ role: 'agent' });
  const listener = serverOf(opened.app);
  for (let count = 0; count < 50; count += 1) await listener.inject('/nowhere');
  expect(opened.lines).toHaveLength(50);
});
