<?php
/**
 * Leaves nothing behind when the plugin is deleted.
 */

if ( ! defined( 'WP_UNINSTALL_PLUGIN' ) ) {
	exit;
}

delete_option( 'queue_manager' );
