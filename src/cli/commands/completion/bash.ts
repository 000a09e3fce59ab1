import { defineShell } from './scripts.ts';

export const bashCompletion = defineShell('bash');
