import { defineShell } from './scripts.ts';

export const fishCompletion = defineShell('fish');
