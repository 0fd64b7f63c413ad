<?php
/**
 * A WordPress site with the plugin, for PHP's own server. QM_PLUGIN is the plugin's folder, QM_SITE_OPTIONS the file of its database.
 * A case may bring its own settings in the header X-Test-Options. The site answers with what has reached it.
 */

require __DIR__ . '/wordpress.php';

// WordPress adds slashes to what PHP has read.
$_SERVER = wp_slash_deep( $_SERVER );
$_POST   = wp_slash_deep( $_POST );

require getenv( 'QM_PLUGIN' ) . '/queue-manager.php';

do_action( 'plugins_loaded' );
do_action( 'init' );

$path = strtok( $_SERVER['REQUEST_URI'], '?' );

function wp_show( $value ) {
	header( 'Content-Type: application/json' );
	echo json_encode( $value );
	exit;
}

switch ( wp_kind() ) {
	case 'admin':
		do_action( 'admin_menu' );
		do_action( 'admin_init' );
		if ( '/wp-admin/options.php' === $path ) {
			check_admin_referer( $_POST['option_page'] . '-options' );
			if ( ! current_user_can( 'manage_options' ) ) {
				wp_die( 'Sorry, you are not allowed to manage options for this site.', 403 );
			}
			foreach ( $wp_settings[ $_POST['option_page'] ] as $name ) {
				update_option( $name, wp_unslash( isset( $_POST[ $name ] ) ? $_POST[ $name ] : null ) );
			}
			wp_show( array( 'errors' => $wp_errors ) );
		}
		if ( '/wp-admin/update-core.php' === $path ) {
			// As wp_update_plugins and the upgrader do it.
			$file    = plugin_basename( QUEUE_MANAGER_FILE );
			$header  = get_file_data( QUEUE_MANAGER_FILE, array( 'Version' => 'Version', 'UpdateURI' => 'Update URI' ) );
			$update  = apply_filters( 'update_plugins_' . parse_url( $header['UpdateURI'], PHP_URL_HOST ), false, $header, $file, array() );
			$details = apply_filters( 'plugins_api', false, 'plugin_information', (object) array( 'slug' => 'queue-manager' ) );
			$other   = apply_filters( 'plugins_api', false, 'plugin_information', (object) array( 'slug' => 'akismet' ) );
			$package = isset( $_GET['package'] ) ? $_GET['package'] : ( $update ? $update['package'] : '' );
			$reply   = apply_filters( 'upgrader_pre_download', false, $package, null, array() );
			wp_show(
				array(
					'installed' => $header['Version'],
					'update'    => $update,
					'details'   => $details,
					'other'     => $other,
					'error'     => is_wp_error( $reply ) ? $reply->get_error_message() : '',
					'sha256'    => is_string( $reply ) ? hash_file( 'sha256', $reply ) : '',
				)
			);
		}
		$page = $wp_pages[ $_GET['page'] ];
		if ( ! current_user_can( $page[0] ) ) {
			wp_die( 'Sorry, you are not allowed to access this page.', 403 );
		}
		call_user_func( $page[1] );
		exit;
	case 'login':
		wp_show( array( 'login' => true ) );
}

$wp             = new stdClass();
$wp->query_vars = array();
if ( '/robots.txt' === $path ) {
	$wp->query_vars['robots'] = '1';
}
if ( 0 === strpos( $path, '/wp-json/' ) ) {
	add_action(
		'parse_request',
		function () {
			wp_show( array( 'rest' => true ) );
		}
	);
}
do_action( 'parse_request', $wp );

header( 'Set-Cookie: site=1', false );
wp_show(
	array(
		'reached'  => true,
		'method'   => $_SERVER['REQUEST_METHOD'],
		'target'   => wp_unslash( $_SERVER['REQUEST_URI'] ),
		'cookie'   => isset( $_SERVER['HTTP_COOKIE'] ) ? wp_unslash( $_SERVER['HTTP_COOKIE'] ) : '',
		'uncached' => defined( 'DONOTCACHEPAGE' ),
	)
);
