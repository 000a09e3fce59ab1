import type { LightMyRequestResponse } from 'fastify';
import { systemRandom } from '../../../../src/daemon/system/machine.ts';
import { lazyChangeFeed } from '../../../../src/features/following/daemon/process.ts';
import type { ChangeFeed } from '../../../../src/features/following/service/ports.ts';
import type { ChangesObject } from '../../../../src/features/following/wire/change-feed.ts';
import {
  byProduct,
  openKeyedAuthority,
  type Headers,
  type KeyedAuthority,
} from '../../../support/harness/keyed-authority.ts';
import { silent } from '../../../support/silent-log.ts';

export const agentA = 'a'.repeat(32);
export const agentB = 'b'.repeat(32);

/** Followers at the change feed of an authority. */
export interface FollowedAuthority extends KeyedAuthority {
  changes(body: object, headers?: Headers): Promise<ChangesObject>;
}

export async function openAuthority(): Promise<FollowedAuthority> {
  const servers: ChangeFeed[] = [];
  const authority = await openKeyedAuthority(({ reader, writer, changes }, clock) => {
    const random = { ...systemRandom, fraction: () => 0 };
    const changeFeed = lazyChangeFeed({ reader, writer, changes, clock, random, log: silent });
    servers.push(changeFeed);
    return { changeFeed };
  });
  return {
    ...authority,
    async changes(body, headers = byProduct) {
      const answer = await authority.post('/sync/v1/changes', { agent: agentA, ...body }, headers);
      return dataOf(answer) as ChangesObject;
    },
    async [Symbol.asyncDispose]() {
      for (const server of servers) server.stopWaiting();
      await authority[Symbol.asyncDispose]();
    },
  };
}

export function dataOf(response: LightMyRequestResponse): unknown {
  if (response.statusCode !== 200) throw new Error(`${response.statusCode}: ${response.body}`);
  return response.json<{ data: unknown }>().data;
}
