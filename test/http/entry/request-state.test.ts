import { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { connectionName } from '../../../src/http/entry/request-state.ts';

test('a connection keeps its name, and another connection has another name', () => {
  const [one, other] = [new Socket(), new Socket()];
  const name = connectionName(one);
  expect(connectionName(other)).not.toBe(name);
  expect(connectionName(one)).toBe(name);
});
