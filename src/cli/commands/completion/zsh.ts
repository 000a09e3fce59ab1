import { defineShell } from './scripts.ts';

export const zshCompletion = defineShell('zsh');
