import { defineShell } from './scripts.ts';

export const command = defineShell('powershell');
