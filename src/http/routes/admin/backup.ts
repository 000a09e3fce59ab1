import { z } from 'zod';
import { done } from '../../../domain/problem/problem.ts';
import { route, type Route } from '../../route.ts';

const backup = route({
  method: 'GET',
  path: '/admin/v1/backup',
  operationId: 'downloadBackup',
  tag: 'Server',
  summary: 'A consistent copy of the store, one at a time',
  refusals: ['backup_running', 'backed_up_by_the_database'],
  access: { credential: 'any', scope: 'admin' },
  operatorOnly: true,
  answers: { 200: z.file() },
  async handle({ app, signal }) {
    const made = await app.backup(signal);
    if (!made.ok) return made;
    const { sizeBytes, content } = made.value;
    const headers = { 'Content-Type': 'application/octet-stream', 'Content-Length': String(sizeBytes) };
    return done({ status: 200, headers, body: content });
  },
});

/** Copies of the store, for `latchkey restore` (src/http/README.md, Admin routes). */
export const backupRoutes: readonly Route[] = [backup];
