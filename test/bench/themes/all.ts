import type { Theme } from '../theme.ts';
import { useTheme } from './use.ts';
import { verifyTheme } from './verify.ts';

/** Every theme, in the order of the table. To add one: a file beside this, and its name here. */
export const themes: readonly Theme[] = [verifyTheme, useTheme];
